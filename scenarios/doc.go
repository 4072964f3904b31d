// Package scenarios defines the format of scenario files. It contains the loader, the
// writer, and the files that come with the program. Package scenarios/subject describes
// the locks. Package scenarios/play runs and judges a scenario.
package scenarios
