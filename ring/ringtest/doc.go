// Package ringtest says what memory is there: of this process, and of tables outside of the
// heap. For tests.
package ringtest
