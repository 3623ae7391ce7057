// Package urlpath has the rule of what a path of the services may be. The services and the console
// obey it, so that a path means the same to both, to a proxy in front of them and to the member
// that a request is sent on to.
//
// The package has no state. Any goroutine may call it.
package urlpath
