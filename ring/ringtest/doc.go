// Package ringtest tells tests which memory is resident: of this process, and of tables outside the
// heap.
package ringtest
