// Package interop holds the port against the library it is a port of. A
// driver (library/java/) runs the library's locks on real Java threads and this
// package's tests have both do the same on a real redis-server: the library's
// answers are right by definition.
//
// The tests that need Java are behind the build tag interop. What the library
// answered is kept in testdata/, so that the port is checked without Java too.
package interop
