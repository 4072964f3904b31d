// Package gostory is the part of a Go test of package upstream that is the same for all defects: clients
// of a library, each behind a small proxy, with threads that lock and unlock. It needs nothing but the
// standard library. Package upstream writes its files, those of a library and the story into one file,
// which is why its names are exported.
package gostory
