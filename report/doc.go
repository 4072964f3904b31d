// Package report shows a run to somebody who did not write its scenario: when
// two owners overlapped, which message was lost, what the server held at that
// moment, and why the judge says no. From a record and what the judges found it
// makes a page, a text, a diagram; from a folder of results an index. It runs
// nothing and judges nothing.
//
// The one idea: everything is drawn from a view, which is a record with lanes,
// bars and arrows in place of events. Exchanges that only repeat are folded
// into one, and a record that is too long for a browser is cut around what was
// found; both say so.
package report
