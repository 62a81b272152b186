-- SPDX-License-Identifier: Apache-2.0
-- The same as an operation.
return { operations = { echo = function(input) return input end } }
