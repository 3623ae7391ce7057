// Package settings knows every setting: its name, kind, default and help, and where its
// value comes from.
//
//	default  <  key=value file  <  environment  <  flag   ──► Config
//
// Read settles a Config from all sources. An unknown name, a value that its kind refuses
// and a combination that would be unsafe are a UsageError in one line that names the
// setting. A Config does not change afterwards; any goroutine may read it. The accessors
// (String, Int, Millis and so on) panic on a name or kind that is not in List: that is a
// bug of this program.
//
// The package also has what belongs to the command line as a whole: exit codes, the
// version line, secrets that are made in the data directory on first use, and the seed
// files of accounts and securities that are built into the binary.
package settings
