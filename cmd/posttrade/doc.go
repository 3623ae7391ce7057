// Posttrade is an order matcher with a journal, and the post-trade services, in one process: see
// ARCHITECTURE.md, and `posttrade -h`.
//
// This folder holds main and the subcommands. A subcommand reads its flags, calls a room and prints
// what the room returns: what it does is in that room.
//
//	os.Args -> dispatch -> command.run -> flags.read -> settings.Config -> a room -> stdout
//	                                          |                               |
//	                                          +-- help, usage errors          +-- error -> stderr
//
// Where a subcommand gets its answer:
//
//   - serve and perf run something in this process, until a signal or their end; replay does, or
//     loads a server.
//   - health, recon, export, tca, source status, watch and backup ask the server that runs on
//     data.dir. They find it by data.dir/ports.json, and those that need a token make one with the
//     installation's secret. cluster asks the members over their own port. stop and top make no
//     request: stop uses the lock of data.dir (of an older build's server the journal's), top the
//     file of the figures.
//   - journal, inspect, why, what-if and evidence read data.dir themselves, also beside a running
//     server, and need none.
//   - journal accept, journal archive and snapshot change a journal, so they refuse while a server
//     has it open. restore fills an empty data.dir.
//   - config, token, completion, version, risk-extract and evidence verify need neither a server
//     nor a journal.
//
// What holds for all of them:
//
//   - The result goes to stdout; progress, and the one line of an error, go to stderr.
//   - The exit code is 0, 1 for a failure, 2 for a wrong command line or setting, 3 for a
//     verification that has found a difference (app/settings, Exit). Content that is wrong is 3 and
//     content that cannot be read is 1, so a script can tell damage from a missing file.
//   - Every setting is a flag of every command, beside the command's own flags, which may not have
//     the name of one.
//
// Wiring of the installation is in app/installation, not here.
package main
