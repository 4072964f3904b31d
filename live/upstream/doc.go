// Package upstream writes reports for the issue tracker of a library: a text in the headings of its
// form, and a test that its maintainers can run, with nothing of this repository. It plays
// nothing itself.
package upstream
