package judges

// Sentence is sentence.Finding, and PartingSentence is sentence.Parting. Their package imports
// this one, so that a test of the package outside sets them.
var (
	Sentence        func(f Finding) string
	PartingSentence func(p Parting) string
)
