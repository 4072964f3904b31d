package spread

import "time"

// For the tests, which use a package that imports this one.
var (
	WriteResult = writeResult
	ReadResult  = readResult
)

func (c *Coordinator) Hurry() { c.lookAgain = 20 * time.Millisecond }

func (c *Coordinator) Heard(told Told) { c.hear(told) }
