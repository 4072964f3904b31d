// Package redis has the signatures of redigo that the tests need.
package redis

type Conn interface {
	Do(commandName string, args ...any) (reply any, err error)
	Send(commandName string, args ...any) error
}

type Script struct{}

func NewScript(keyCount int, src string) *Script           { return nil }
func (*Script) Do(c Conn, keysAndArgs ...any) (any, error) { return nil, nil }
func String(reply any, err error) (string, error)          { return "", nil }
