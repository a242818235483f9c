// The least that a CLR profiler can be. When it is attached it writes "attached" into the file that its client data names; when it is loaded at
// start-up, "started" into the file that the variable DN_TOP_PROFILER names. Interfaces as in corprof.idl of the runtime.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK 0
#define NO_INTERFACE ((int32_t)0x80004002)

// The methods of IUnknown, of ICorProfilerCallback (69), of its second version (8), and of its third: InitializeForAttach comes first there.
enum { INITIALIZE = 3, INITIALIZE_FOR_ATTACH = 3 + 69 + 8, METHODS = INITIALIZE_FOR_ATTACH + 3 };

typedef int32_t (*method)(void *, ...);
typedef struct { method *methods; } object;

static const uint8_t callback_2[16] = {0x29, 0xc8, 0x8c, 0x8a, 0xf2, 0xcc, 0xfe, 0x49, 0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a};
static const uint8_t callback_3[16] = {0x52, 0xed, 0xd2, 0x4f, 0x31, 0x77, 0x8d, 0x4b, 0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5};

static method callback_methods[METHODS];
static method factory_methods[5];
static object callback = {callback_methods};
static object factory = {factory_methods};

static int32_t nothing(void *self) { (void)self; return OK; }
static int32_t one(void *self) { (void)self; return 1; }

static void write_to(const char *path, const char *text) {
  FILE *file = path ? fopen(path, "wx") : NULL;
  if (file == NULL) return;
  fputs(text, file);
  fclose(file);
}

static int32_t query(void *self, const uint8_t *interface, void **result) {
  int known = self == &factory || memcmp(interface, callback_2, 16) == 0 || memcmp(interface, callback_3, 16) == 0;
  *result = known ? self : NULL;
  return known ? OK : NO_INTERFACE;
}

static int32_t initialize(void *self, void *info) {
  (void)self, (void)info;
  write_to(getenv("DN_TOP_PROFILER"), "started");
  return OK;
}

static int32_t initialize_for_attach(void *self, void *info, const void *data, uint32_t length) {
  (void)self, (void)info;
  char path[4096];
  if (length >= sizeof path) return OK;
  memcpy(path, data, length);
  path[length] = 0;
  write_to(path, "attached");
  return OK;
}

static int32_t create(void *self, void *outer, const uint8_t *interface, void **result) {
  (void)self, (void)outer;
  return query(&callback, interface, result);
}

int32_t DllGetClassObject(const uint8_t *class, const uint8_t *interface, void **result) {
  (void)class, (void)interface;
  for (int i = 0; i < METHODS; i++) callback_methods[i] = (method)nothing;
  for (int i = 0; i < 5; i++) factory_methods[i] = (method)nothing;
  callback_methods[0] = factory_methods[0] = (method)query;
  callback_methods[1] = callback_methods[2] = factory_methods[1] = factory_methods[2] = (method)one;
  callback_methods[INITIALIZE] = (method)initialize;
  callback_methods[INITIALIZE_FOR_ATTACH] = (method)initialize_for_attach;
  factory_methods[3] = (method)create;
  *result = &factory;
  return OK;
}
