package redislock

import "embed"

// Stories are scenarios about these locks. Their folders are their tags.
//
//go:embed testdata/*/*.yaml
var Stories embed.FS
