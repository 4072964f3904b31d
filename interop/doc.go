// Package interop compares the port with the library. A driver (library/java/) runs the library's
// locks on real Java threads. The tests let both make the same calls on a real redis-server. The
// library's answers are right by definition.
//
// The tests that need Java are behind the build tag interop. The library's answers are kept in
// testdata/, so that the port can also be checked without Java.
//
// Tests against the library mostly wait, so they run side by side. A test that plays in a bubble
// does not: go-redis keeps timers in a package-level pool, and a timer of a bubble must not reach a
// client outside it.
package interop
