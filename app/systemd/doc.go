// Package systemd speaks the notification protocol of systemd's service manager: lines such as
// READY=1 in datagrams to the socket that the environment names.
//
// FromEnvironment reads NOTIFY_SOCKET, WATCHDOG_USEC (microseconds) and WATCHDOG_PID as
// sd_notify(3) and sd_watchdog_enabled(3) define them. Outside systemd there is no such socket, and
// the notifier is nil: the caller then has nothing to tell.
//
// What is told and when is for the caller. A datagram that cannot be sent is an error of that call
// and has no other effect: the manager's own time limits decide what follows. Any goroutine.
package systemd
