package sim

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// Unsuited says why no world can run in this process; "" if one can. The settings of GODEBUG that are in force are
// those of the environment and, below them, those with which the program was built.
func Unsuited() string {
	setting := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "DefaultGODEBUG" {
				setting = s.Value
			}
		}
	}
	return unsuited(setting + "," + os.Getenv("GODEBUG"))
}

func unsuited(godebug string) string {
	value := "0"
	for one := range strings.SplitSeq(godebug, ",") {
		if v, ok := strings.CutPrefix(one, "asynctimerchan="); ok {
			value = v
		}
	}
	if value == "0" {
		return ""
	}
	return fmt.Sprintf("GODEBUG sets asynctimerchan=%s, with which Go simulates no time; remove it from the environment, and from go.mod", value)
}
