// Package interop holds the port against the library it is a port of. A
// driver (library/java/) runs the library's locks on real Java threads and this
// package's tests have both do the same on a real redis-server: the library's
// answers are right by definition.
//
// The tests that need Java are behind the build tag interop. The library's answers are kept in
// testdata/, so that the port is checked without Java, too.
//
// Tests against the library mostly wait, so they run side by side. A test that
// plays in a bubble does not: go-redis keeps timers in a package-level pool, and a
// timer of a bubble must not reach a client outside of it.
package interop
