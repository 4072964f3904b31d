// Package gostory is the part of a Go test of package upstream that is the same for all defects: clients of a
// library with threads that lock and unlock, assertions, and proxies between the clients and the servers. It needs
// nothing but the standard library.
//
// Package upstream writes the files of this package, the files of a library and the story into one file, and cuts
// the parts that no test reaches. The names of this package are exported because the library and the story use them.
// The cut goes by names. So a part that only some stories need is behind a function that only these stories call,
// and no function has a name that other code uses.
package gostory
