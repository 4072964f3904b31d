package sim

// Drawable is a Server that tells what campaigns draw for the clients of its locks. For another
// server they draw rules on any command that it knows, and one error.
type Drawable interface {
	Server
	Drawing() Drawing
}

// Drawing is what campaigns draw for the clients of a server.
type Drawing struct {
	// Commands are the names of the commands that clients of locks usually send, for rules on
	// messages. Nil: any command that the server knows.
	Commands []string
	// Listen is the command of a waiter that wants to hear of a release; "": there is none.
	Listen string
	// Errors are the texts with which a rule answers in the place of the server, the plainest
	// first. Nil: one text.
	Errors []string
}
