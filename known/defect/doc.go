// Package defect defines how known defects are described. A [Case] is a finding with its
// record. A [Defect] finds its [Cause] in the record of a case.
//
// A defect reads the typed facts of a finding and the record. It never reads a
// sentence, and never looks for a name inside another string.
package defect
