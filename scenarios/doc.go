// Package scenarios turns a scenario file into verdicts: the files' format and
// loader, the registry of locks, and the runner that puts lock, world and
// judges together. It is the only package that knows all of them.
package scenarios
