// This file lets pools.go declare functions without a body.
