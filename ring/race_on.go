//go:build race

package ring

// raceEnabled reports a build with the race detector. The detector watches Go's own memory only, so
// private regions then come from the heap and it sees every slot access.
const raceEnabled = true
