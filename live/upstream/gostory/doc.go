// Package gostory is the part of a Go test of package upstream that is the same for all defects: clients of a
// library with threads that lock and unlock, assertions, and proxies between the clients and the servers. It needs
// nothing but the standard library. Package upstream writes its files, those of a library and the story into one
// file, which is why its names are exported, and cuts what no test reaches. It goes by names. So a part that only
// some stories need is behind a function that only they call, and no function has the name of one in use elsewhere.
package gostory
