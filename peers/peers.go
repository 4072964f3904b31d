// Package peers is the module of locks of other libraries, judged unmodified, and of the
// servers beside Redis that locks are written for. Each has a package with an adapter and a
// test. Users of Lockstep do not download them.
package peers
