// Package upstream writes reports for the issue tracker of a library: a text with the headings of
// the tracker's form, and a test that the maintainers can run without this repository. The package
// plays nothing itself.
package upstream
