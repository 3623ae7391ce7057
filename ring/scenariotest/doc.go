// Package scenariotest plays scenario files. A file is a script that a trader can read, a line of
// dashes, and what the script must give.
package scenariotest
