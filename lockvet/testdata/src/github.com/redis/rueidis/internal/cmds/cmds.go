// Package cmds has the builders of rueidis that the tests need.
package cmds

type (
	Builder   struct{}
	Completed struct{}
	Del       struct{}
	DelKey    struct{}
	Set       struct{}
	SetKey    struct{}
	SetValue  struct{}
	SetNx     struct{}
	SetPx     struct{}
)

func (Builder) Del() (d Del)                    { return }
func (Del) Key(key ...string) (d DelKey)        { return }
func (DelKey) Build() (c Completed)             { return }
func (Builder) Set() (s Set)                    { return }
func (Set) Key(key string) (s SetKey)           { return }
func (SetKey) Value(value string) (s SetValue)  { return }
func (SetValue) Nx() (s SetNx)                  { return }
func (SetNx) PxMilliseconds(ms int64) (s SetPx) { return }
func (SetNx) Build() (c Completed)              { return }
func (SetPx) Build() (c Completed)              { return }
