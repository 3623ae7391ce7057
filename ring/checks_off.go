//go:build !checks && !race

package ring

// Checks turns on the assertions of the hot calls, here and in the rooms above. It is a constant:
// without the tag the compiler leaves out what it guards.
const Checks = false
