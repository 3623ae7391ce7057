// Package storetest is the test rig of everything that works on sidecars/store: fresh databases
// in both dialects, and the faults that they must survive.
//
//	storetest.Each(t, func(t *testing.T, db *store.DB) { ... })   // SQLite and PostgreSQL
//	storetest.EachInFull(t, ...)                                  // with -short on one of them
//	storetest.Edit(t, db, "update trades set price = $1", 1)      // a hand edit
//	unlock := storetest.Lock(t, db)                               // another session writes
//	db, network := storetest.Cut(t)                               // Cut, Hold, Heal; PostgreSQL only
//	storetest.Terminate(t, db)                                    // PostgreSQL ends its sessions
//
// PostgreSQL is the server that POSTTRADE_TEST_POSTGRES names (a URL with a user that may create
// databases). Without it the rig starts a private server for this test binary, from the programs in
// PATH or in Debian's folders. Tests reach it through a socket in a folder of its own. The server
// ends and its folder is removed when the test process ends, however that happens. With neither,
// only SQLite is tested, and with CI=true the test fails.
//
// Every database is removed with the test that asked for it.
package storetest
