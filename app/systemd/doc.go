// Package systemd speaks the notification protocol of systemd's service manager: lines such as
// READY=1 in datagrams to the socket that the environment names. Outside systemd there is no such
// socket, and nothing to tell.
package systemd
