//go:build race

package gate

// raceEnabled: the race detector makes sync.Pool drop things at random.
const raceEnabled = true
