// Package console is the web console: it serves the console's files and sends the requests of its
// pages to the services of this process.
//
//	browser -> Host, Origin -+-> /assets/..., a page: files in the binary
//	                         +-> /api/session: sign in, the signed-in subject, sign out
//	                         +-> /api/<service>/...: cookie -> token -> pipe -> the service's server
//
// The package has no rule of its own about orders or accounts. A request reaches the service by
// a connection in memory, on which the same server answers as on the service's port: the same
// framing, limits, checks of the token, and relay to the leader. What the browser sends is not
// copied to the service: the request is built anew from its method, its plain path, its query, a
// short list of headers and its body, with the token of the session.
//
// What holds:
//   - Only names that the console knows are answered (see names), so that a page of another name
//     that resolves to this machine gets nothing.
//   - The session is the access token itself, in a cookie that no script can read. The console has
//     no state: a session survives a restart, and works on every member with the same secret.
//   - A request that may change something needs the console's own Origin and, in the session, a
//     header that only a page of this origin can know.
//   - Every answer forbids frames, inline scripts and other hosts.
//   - The one click that signs in exists in the dev profile only, for a browser on loopback that no
//     proxy stands in front of.
package console
