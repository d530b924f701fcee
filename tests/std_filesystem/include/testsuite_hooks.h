#pragma once

// Found before libstdc++'s header: its tests of <filesystem> use only this macro of it.

#include <ctime>

#include <assert.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERIFY(...) assert(__VA_ARGS__)
