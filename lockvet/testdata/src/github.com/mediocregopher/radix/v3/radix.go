// Package radix has the signatures of radix that the tests need.
package radix

type Action interface{ Run() error }

type Pool struct{}

func (*Pool) Do(a Action) error { return nil }

func Cmd(rcv any, cmd string, args ...string) Action       { return nil }
func FlatCmd(rcv any, cmd, key string, args ...any) Action { return nil }
