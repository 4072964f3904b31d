// Package java registers the locks of the Java library org.redisson:redisson for live runs. Each
// client of such a lock is a JVM of its own that runs the library as it was published.
package java
