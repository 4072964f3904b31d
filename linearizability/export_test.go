package linearizability

// Sentence is sentence.History. Its package imports this one, so that a test of the package
// outside sets it.
var Sentence func(r Reason, at func(ns int64) string) string
