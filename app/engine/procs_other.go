//go:build !linux

package engine

// allowedCores: no system but Linux says so.
func allowedCores() string { return "" }
