//go:build !race

package ring

// raceEnabled reports a build with the race detector.
const raceEnabled = false
