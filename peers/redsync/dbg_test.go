package redsync
import ("testing";"os";"lockstep/locktest")
func TestDbg(t *testing.T){ _ = os.Getenv; locktest.Run(t, Subject(1), locktest.Options{}) }
