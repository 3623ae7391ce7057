//go:build !checks && !race

package ring

// checks turns the assertions of the hot calls on.
const checks = false
