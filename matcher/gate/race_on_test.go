//go:build race

package gate

// raceEnabled: under the race detector sync.Pool drops items at random.
const raceEnabled = true
