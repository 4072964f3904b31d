// Package report shows a run to a reader who did not write its scenario. It shows
// when two owners overlapped, which message was lost, what the server held at
// that moment, and why the judge says no. It makes a page, a text or a diagram
// from a record and its findings, and an index from a folder of results. It runs
// nothing and judges nothing.
//
// Everything is drawn from a view. A view is a record with lanes, bars and arrows
// in place of events. It folds exchanges that only repeat into one. If a record is
// too long for a browser, the view keeps the parts around the findings. Both are
// marked.
package report
