//go:build !linux

package load

func promptTimers() {}
