// Package export writes a range of a journal into a folder that proves itself; package bundle has
// the folder's files, and checks it. All functions block and hold one engine.
package export
