// Package storetest is the test rig of everything that works on sidecars/store: databases
// that are fresh, on both dialects, and the faults they must survive.
//
//	storetest.Each(t, func(t *testing.T, db *store.DB) { ... })   // SQLite and PostgreSQL
//	storetest.EachInFull(t, ...)                                  // with -short on one of them
//	storetest.Edit(t, db, "update trades set price = $1", 1)      // a hand edit
//	unlock := storetest.Lock(t, db)                               // somebody else writes
//	db, network := storetest.Cut(t)                               // network.Cut, Hold, Heal; PostgreSQL only
//	storetest.Terminate(t, db)                                    // PostgreSQL ends its sessions
//
// PostgreSQL is the server that POSTTRADE_TEST_POSTGRES names (a URL whose user may create
// databases). Without it the rig starts a private server for this test binary, from the
// programs in PATH or where Debian puts them. It is reached through a socket in a folder of
// its own, and it ends, folder and all, when the test process ends, however that happens.
// With neither, only SQLite is tested, and with CI=true the test fails.
//
// Every database is removed with the test that asked for it.
package storetest
