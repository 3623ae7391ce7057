//go:build race

package ring

// raceEnabled: the detector follows Go's own memory only, so private regions
// then come from the heap and every slot access is watched.
const raceEnabled = true
