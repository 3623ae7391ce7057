// Package settings knows every setting: its name, kind, default and help, and where its
// value comes from.
//
//	default  <  key=value file  <  environment  <  flag   ──► Config
//
// Read settles a Config from all sources. It refuses an unknown name, a value that its kind does
// not allow, and an unsafe combination, with a UsageError of one line that names the setting. A
// Config does not change afterwards; any goroutine may read it. The accessors (String, Int, Millis
// and so on) panic on a name or kind that is not in List: that is a bug of this program.
//
// The package also has what belongs to the command line as a whole: exit codes, the version line,
// secrets that a process makes in the data directory on first use, and the seed files of accounts
// and securities that are built into the binary.
package settings
