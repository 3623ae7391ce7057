// Package matchertest has a second engine for tests: a model that decides every command in the
// plainest way. The engine's own tests compare each event and the whole state with it; those of
// what is built on engines use it as an oracle that shares nothing with the engine.
package matchertest
