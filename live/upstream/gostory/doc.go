// Package gostory is the part of a Go test of package upstream that is the same for all defects: clients of a
// library with threads that lock and unlock, assertions, and proxies between the clients and the servers. A Script says
// what they do. The package needs nothing but the standard library, since package upstream copies its files into the
// module of each test. There they share one package with the files of a library, which use the exported names.
package gostory
