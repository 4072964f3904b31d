// Package defect holds the words in which known defects are written: a Defect, the
// Cause that it shows in a record, and a Case, which is a finding with its record.
//
// A defect reads the typed facts of a finding and the record. It never reads a
// sentence, and never looks for a name inside another string.
package defect
