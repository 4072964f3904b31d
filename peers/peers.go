// Package peers is the module of locks of other libraries, judged unmodified, and of the servers
// besides Redis for which locks are written. Each has a package with an adapter and a test. Users
// of Lockstep do not download them.
package peers
