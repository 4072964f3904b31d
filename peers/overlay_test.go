package peers

import (
	"strings"
	"testing"

	"lockstep/internal/longtest"
)

// overlaid are the packages with locks that need the overlay. Their tests of these locks have its tag.
const overlaid = "./redisclients ./retold"

func TestTheLocksThatNeedTheOverlay(t *testing.T) {
	longtest.Only(t)
	text := must(t, ".", nil, "go run ../cmd/simrun test -v "+overlaid)
	for _, name := range []string{"TestGoRedis8", "TestRing", "TestRadix", "TestScalingo", "TestGoMySQLLock", "TestElector"} {
		if !strings.Contains(text, "--- PASS: "+name+" ") {
			t.Errorf("%s did not run:\n%s", name, text)
		}
	}
}
